from monarch.actor import Actor, current_rank, endpoint
from mportal_runtime import meshes


class Adder(Actor):
    @endpoint
    def square(self) -> int:
        rank = current_rank().rank
        print(f"process {rank} is at work")
        return rank * rank


procs = meshes.workers.spawn_procs(per_host={"procs": 2})
adders = procs.spawn("adders", Adder)
squares = [value for _, value in adders.square.call().get()]
print("sum:", sum(squares))
assert sum(squares) == 0 + 1 + 4 + 9
