from pathlib import Path

from monarch_client.spec.project_files import project_defaults

text, origins = project_defaults(Path()).completed("run: python train.py\n")
print(text, {path: default.where for path, default in origins.items()})
