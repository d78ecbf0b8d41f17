"""What `bench_filter.py` measures: boosting from streams."""
