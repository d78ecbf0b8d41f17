"""Models for other software: one target a file. The methods of the estimators (`gpuboost.export.methods`) are the way in.

What is kept of a model, tested on random rows, on all thresholds and the floats next to them, on NaN, infinities, -0.0 and
integers beyond 2**24, with float64 and float32 input:

===============  ==================================  ======================  =====================================
method           scores                              labels                  probabilities
===============  ==================================  ======================  =====================================
`to_dict`        bit for bit (added as "reading"     the same                by the formula in the dict; bits
                 says)                                                       depend on the reader's exp
`to_onnx`        bit for bit                         the same, with types    bit for bit
`to_treelite`    bit for bit (GTIL)                  argmax of the scores    softmax and multi-label models, to
                                                                             1e-6; else none
`to_shap`        Shapley values that add up to the   --                      --
                 scores, to about 1e-7
===============  ==================================  ======================  =====================================

"Bit for bit" means ONNX Runtime on a CPU and Treelite's GTIL. A runtime that computes in float32, or adds the trees in another
order, can give other labels to rows that lie on a threshold or have tied scores.
"""
