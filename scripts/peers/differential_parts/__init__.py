"""Parts of differential.py: random programs, random pipelines, and the observable results of an
execution."""
