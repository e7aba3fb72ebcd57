"""Where containers run without an engine: base images, Dockerfile builds and the namespace sandbox."""
