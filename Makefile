# Thin: every target is a call of Meson or of one script. `./run` and `./test` install what is missing first.
BUILD ?= build

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@meson setup $(BUILD) -Dbuildtype=release -Doptimization=2

fmt:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

.PHONY: all fmt
