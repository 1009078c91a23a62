"""A driver's way to its workers: `from mportal_runtime import meshes`, then `meshes.trainers`.

The portal puts this module on the PYTHONPATH of a Monarch job. Monarch itself is imported when a
mesh is first used.
"""

from .attaching import Meshes, MeshesError, PythonMismatchError, UnknownMeshError
from .reporting import report_uncaught

__all__ = ["Meshes", "MeshesError", "PythonMismatchError", "UnknownMeshError", "meshes"]

meshes = Meshes()
report_uncaught()
