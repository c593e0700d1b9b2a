
from distract import Attack

def write(task):
    return tuple("Certainly, definitely, absolutely." for _ in task.response.turns)
    yield

ATTACK = Attack("sure", "only boosters", truth="hollow", keeps="nothing", write=write)
