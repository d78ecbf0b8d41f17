"""Models that compare rows with training points: how values become integers (`scale`), and the classifiers (`ensemble`)."""
