"""`RemoteJob`: meshes of workers that already run, or of a job that the portal starts."""
