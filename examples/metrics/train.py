from mportal_runtime import log

for step in range(1000):
    loss = 1 / (step + 1)  # of your model
    log(step, loss=loss, lr=0.001)
