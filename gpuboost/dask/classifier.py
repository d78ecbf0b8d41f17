"""An estimator in the manner of scikit-learn, for those who want one."""

from __future__ import annotations

from typing import Any, Self

from distributed import Client, default_client
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from gpuboost.dask.fitting import fit
from gpuboost.dask.prediction import predict, predict_proba


class DaskClassifier(BaseEstimator):  # type: ignore[misc]
    """Any classifier of gpuboost, trained on a cluster.

    Parameters
    ----------
    estimator : BoostingClassifier
        Which one, with its parameters. It stays as it is.
    client : distributed.Client, optional
        By default the client that was made last. Clones have the same one; a pickle and a copy have none.

    Attributes
    ----------
    model_ : BoostingClassifier
        The fitted estimator, which lies in this process and needs no cluster.
    classes_ : ndarray
    """

    def __init__(self, estimator: Any, client: Client | None = None) -> None:
        self.estimator = estimator
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None, **options: Any) -> Self:
        """Train on the cluster, see `gpuboost.dask.fit`, whose other parameters are ``options``."""
        self.model_ = fit(self._client(), X, y, sample_weight, eval_set, estimator=self.estimator, **options)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Predict the classes, see `gpuboost.dask.predict`."""
        check_is_fitted(self)
        return predict(self._client(), self.model_, X)

    def predict_proba(self, X: Any) -> Any:
        """Estimate the probabilities of the classes, see `gpuboost.dask.predict_proba`."""
        check_is_fitted(self)
        return predict_proba(self._client(), self.model_, X)

    def __sklearn_clone__(self) -> Self:
        return type(self)(clone(self.estimator), self.client)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"client": None}

    def _client(self) -> Client:
        return default_client() if self.client is None else self.client
