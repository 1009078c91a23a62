"""Pages for administrators of the installation: users, projects, queues, pools, quotas, clouds."""
