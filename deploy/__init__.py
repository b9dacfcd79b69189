"""Several replicas behind a proxy: with docker compose, on Kubernetes, or on this machine alone."""
