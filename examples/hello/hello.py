from monarch.actor import Actor, endpoint
from mportal_runtime import meshes


class Greeter(Actor):
    @endpoint
    def greet(self) -> str:
        return "hello from this process"


procs = meshes.trainers.spawn_procs(per_host={"procs": 2})
greeters = procs.spawn("greeters", Greeter)
print(greeters.greet.call().get())
