"""What a fitted classifier can be turned into, as methods; the files of the targets are loaded on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gpuboost.export.trees import Exportable

if TYPE_CHECKING:
    from gpuboost.export.shap import ShapExplainer


class Exports(Exportable):
    """The methods of a classifier of trees that hand the model to other software; see `gpuboost.export`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the model as a plain dict that `json.dumps` takes, in strict JSON, with real thresholds.

        Returns
        -------
        dict
            - "reading": how to predict from this dict, in words;
            - "estimator", "gpuboost": the class and the version that made it;
            - "classes": the labels, in the order of all scores; those that JSON does not have (dates, bytes) as text. Their
              dtype is in "class_dtype";
            - "multi_label": whether the classes do not exclude each other;
            - "features": the names of the columns, x0, x1, ... if they had none;
            - "probabilities": how they follow from the scores, or None if there are none. {"link": "softmax", "divisor": d} is
              ``exp(F_k / d)``, {"link": "sigmoid", "scale": s, "offset": o} is ``1 / (1 + exp(o - s F_k))``, and
              {"link": "class-sigmoids", "scales": [...], "offsets": [...]} the same with numbers for each class. Unless
              ``multi_label``, what is above that of the predicted class is lowered to it, and all are divided by their sum. A
              temperature is in the numbers already;
            - "rounds": for each round of boosting its list of trees; a tree is {"nodes": [...]}, a node either {"feature",
              "name", "less_than", "missing", "left", "right"} or {"leaf": [one number a class]}.

            All floats come back from JSON with their very bits.

        Raises
        ------
        TypeError
            If the model does not consist of trees.

        Examples
        --------
        >>> import gpuboost
        >>> from sklearn.datasets import load_iris
        >>> model = gpuboost.fit(*load_iris(return_X_y=True), n_estimators=2)
        >>> list(model.to_dict())  # doctest: +NORMALIZE_WHITESPACE
        ['reading', 'estimator', 'gpuboost', 'classes', 'class_dtype', 'multi_label', 'features', 'probabilities', 'rounds']
        """
        from gpuboost.export.plain import to_dict

        return to_dict(self)

    def to_onnx(self, input_dtype: Literal["float64", "float32"] = "float64") -> Any:
        """Return the model for ONNX runtimes. It needs the package onnx (``pip install onnx``).

        Parameters
        ----------
        input_dtype : {"float64", "float32"}, default "float64"
            What the graph takes. Both are exact: float32 values are cast to float64 before they are compared. A float64 matrix
            must not be rounded to float32 for the latter.

        Returns
        -------
        onnx.ModelProto
            Its input is "X", of ``input_dtype``, shape (n_rows, n_features) with any number of rows; NaN is missing. Its
            outputs, in this order:

            - "label": what `predict` returns, (n_rows,), in the dtype of ``classes_`` or as strings; for a multi-label problem
              the 0/1 matrix, int64 (n_rows, n_classes);
            - "probabilities", float64 (n_rows, n_classes): what `predict_proba` returns. Not there if the classifier has none;
            - "scores", float64 (n_rows, n_classes): the sums of the trees. `decision_function` returns them, or for two classes
              the second minus the first.

            ``onnx.save(model.to_onnx(), path)`` writes a file.

        Raises
        ------
        ImportError
            If onnx is not installed.
        TypeError
            If the model does not consist of trees, or ONNX has no type for its labels.
        ValueError
            If ``input_dtype`` is another one.

        Notes
        -----
        All outputs are those of gpuboost bit for bit on a runtime that computes float64 in IEEE arithmetic and the nodes of the
        graph one by one, such as ONNX Runtime's CPU provider.

        Examples
        --------
        >>> import gpuboost, onnxruntime
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = gpuboost.fit(X, y, n_estimators=20)
        >>> session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
        >>> label, probabilities, scores = session.run(None, {"X": X})
        >>> bool((label == model.predict(X)).all() and (probabilities == model.predict_proba(X)).all())
        True
        """
        from gpuboost.export.onnx import to_onnx

        return to_onnx(self, input_dtype)

    def to_treelite(self) -> Any:
        """Return the model for Treelite, with vector leaves and float64 thresholds. It needs the package treelite.

        Returns
        -------
        treelite.Model
            ``treelite.gtil.predict(model, X, pred_margin=True)`` returns the scores, float64 (n_rows, 1, n_classes), or
            (n_rows, n_classes, 1) for a multi-label problem. GTIL adds the trees in their order, so that they are the scores of
            gpuboost bit for bit; float32 input is compared as float64. Labels are ``classes_[scores.argmax(axis=-1)]``, and the
            classes with a score above 0 in a multi-label problem; Treelite has none.

            Without ``pred_margin`` the result, of the same shape, is that of the model's postprocessor: probabilities of
            `ABCBoostClassifier`, `LogitBoostClassifier` and `MartClassifier` ("softmax", computed in Treelite's way, equal to
            1e-6), and of multi-label `AdaBoostMHClassifier` ("sigmoid"). For the other classifiers Treelite has no
            postprocessor, and the result is the scores ("identity"); "probabilities" of `to_dict` says how to make
            probabilities of them, as below. So it is for classifiers with a temperature, of which only the multi-label ones
            have a postprocessor, and a warning says so.

        Raises
        ------
        ImportError
            If treelite is not installed.
        TypeError
            If the model does not consist of trees.

        Notes
        -----
        The feature names stand in the JSON of ``dump_as_json()``, in "attributes". A compiler may be set to float32 thresholds
        or another order of additions: then rows that lie on a cut, or have tied scores, can get another label.

        Examples
        --------
        >>> import gpuboost, numpy, treelite
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = gpuboost.fit(X, y, n_estimators=20)  # AdaBoost.MH
        >>> scores = treelite.gtil.predict(model.to_treelite(), X, pred_margin=True)[:, 0, :]
        >>> offset = model.to_dict()["probabilities"]["offset"]  # the link is "sigmoid"
        >>> p = 1 / (1 + numpy.exp(offset - 2 * scores))
        >>> p /= p.sum(axis=1, keepdims=True)
        >>> bool(numpy.allclose(p, model.predict_proba(X)))
        True
        """
        from gpuboost.export.treelite import to_treelite

        return to_treelite(self)

    def to_shap(self, background: Any) -> ShapExplainer:
        """Return an explainer of the scores. It needs the package shap (``pip install shap``).

        Parameters
        ----------
        background : array-like or data frame, shape (n_background, n_features)
            Leaving a feature out means to take it from these rows in turn. Ten to a few hundred rows of the training set do;
            all are used, and time grows with their number.

        Returns
        -------
        gpuboost.export.shap.ShapExplainer
            Call it with rows: it returns a ``shap.Explanation`` for shap's plots, whose ``values`` have the shape
            (n_rows, n_features, n_classes).

        Raises
        ------
        ImportError
            If shap is not installed.
        TypeError
            If the model does not consist of trees.
        ValueError
            If a tree is beyond what shap can count.

        Notes
        -----
        Rows take exactly the ways through the trees that they take in predictions. shap multiplies the leaves' values with
        their weights in float32, so its values are right to about 1e-7 of the sum of the absolute values of the leaves, and add
        up to the scores to that accuracy. Explanations of probabilities are not offered.
        """
        from gpuboost.export.shap import ShapExplainer

        return ShapExplainer(self, background)
