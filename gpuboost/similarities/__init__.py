"""Models that compare rows with training points: values as integers, the classifiers, and what a prediction rests on."""
