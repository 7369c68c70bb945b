"""Parts of differential.py: random programs, random pipelines, and what an execution lets a caller see."""
