"""A stand-in for NVML: GPUs that report what a file holds; the third reports nearly nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How busy the GPUs are, in per cent: the number in the file beside the library. */
static unsigned int use(void) {
    unsigned int number = 0;
    FILE *file = fopen(USE_FILE, "r");
    if (file) {
        if (fscanf(file, "%u", &number) != 1) number = 0;
        fclose(file);
    }
    return number;
}

int nvmlInit_v2(void) { return INIT_ANSWER; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = GPUS; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    *device = (void *)(size_t)(index + 1);
    return 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned int length) {
    snprintf(name, length, "Stand-in %u", (unsigned int)(size_t)device - 1);
    return 0;
}
struct utilization { unsigned int gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *found) {
    if ((size_t)device == 3) return 3; /* not supported */
    found->gpu = use();
    found->memory = 1;
    return 0;
}
struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *device, struct memory *found) {
    if ((size_t)device == 3) return 3;
    found->total = 80ULL << 30;
    found->used = 20ULL << 30;
    found->free = 60ULL << 30;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *degrees) {
    *degrees = 40 + sensor + (unsigned int)(size_t)device;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts) {
    (void)device;
    *milliwatts = 123456;
    return 0;
}
"""


def build(folder: Path, use_percent: int = 97, init_answer: int = 0, gpus: int = 3) -> Path:
    """Compile it into `folder`; `set_use` changes the use of its GPUs later."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler for the stand-in library")
    source, library = folder / "nvml.c", folder / "libnvidia-ml-stand-in.so"
    source.write_text(_SOURCE)
    set_use(library, use_percent)
    numbers = [f"-DINIT_ANSWER={init_answer}", f"-DGPUS={gpus}"]
    defines = [f'-DUSE_FILE="{_use_file(library)}"', *numbers]
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), *defines]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return library


def set_use(library: Path, percent: int) -> None:
    """Set the use of its GPUs to `percent` from now on."""
    new = library.with_name("use.new")
    new.write_text(str(percent))
    new.replace(_use_file(library))


def _use_file(library: Path) -> Path:
    return library.with_name("use")
