# Thin: every target is a call of Meson or of one script. `./run` and `./test` install what is missing first.
BUILD ?= build
RELEASE ?= build-release
PYTHON := /usr/bin/python3
# The sanitized builds; the second compiler gets its turn with ThreadSanitizer. gcc 12 warns wrongly about code that
# -fsanitize=undefined changed, so warnings are no errors there.
ASAN_SETUP := -Dbuildtype=debug -Doptimization=1 -Db_sanitize=address,undefined -Dwerror=false
TSAN_SETUP := -Dbuildtype=debug -Doptimization=1 -Db_sanitize=thread -Db_lundef=false

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

# The program alone, as it is installed and measured: optimized over all files at once and by a profile of itself at
# work (tools/build-trained), which the many test programs would only build slower for. TRAIN=no: without the profile;
# OPTIONS="-Dtls=boringssl": Meson's, at the first build.
isobar: $(RELEASE)/build.ninja
	@ninja -C $(RELEASE) --quiet src/cli/isobar

$(BUILD)/build.ninja:
	@meson setup $(BUILD) -Dbuildtype=release -Doptimization=2

$(RELEASE)/build.ninja:
	@tools/build-trained $(RELEASE) $(OPTIONS)

# Unit tests and the fuzzers' corpora, then the tests on real processes.
test: all
	@tools/run-tests $(BUILD)

asan:
	@test -f build-asan/build.ninja || meson setup build-asan $(ASAN_SETUP)
	@$(MAKE) -s test BUILD=build-asan

tsan:
	@test -f build-tsan/build.ninja || CC=clang meson setup build-tsan $(TSAN_SETUP)
	@$(MAKE) -s test BUILD=build-tsan

# The tests that speak TLS, with BoringSSL in place of OpenSSL.
TLS_UNITS := clienthello names tickets tls_layer
TLS_TESTS := test_tls test_tls_library test_jwt test_health_h2 test_passthrough
boringssl:
	@test -f build-boringssl/build.ninja || meson setup build-boringssl -Dbuildtype=debug -Doptimization=1 -Dtls=boringssl
	@ninja -C build-boringssl --quiet src/cli/isobar $(TLS_UNITS:%=tests/unit/tls_%)
	@UNIT_TESTS='$(TLS_UNITS:%=tls/%)' NET_TESTS='$(TLS_TESTS:%=tests/net/%.py)' tools/run-tests build-boringssl

# Fuzzes each target for FUZZ_SECONDS; findings and grown corpora stay in build-fuzz.
FUZZ_SECONDS ?= 60
fuzz:
	@tools/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

fmt:
	@find src tests bench -name '*.[ch]' ! -path '*/node_modules/*' | xargs clang-format -i

lint:
	@tools/lint

check-deps:
	@$(PYTHON) tools/check-deps

bench: isobar
	@tools/install-packages bench
	@bench/run $(RELEASE)

# Full load while targets die and return and the configuration changes; 10 minutes unless told otherwise.
SOAK_SECONDS ?= 600
soak: isobar
	@tools/install-packages bench
	@ISOBAR=$(RELEASE)/src/cli/isobar /usr/bin/python3 tests/soak/soak.py $(SOAK_SECONDS)

# The same with every protocol at once, under AddressSanitizer.
soak-mixed:
	@tools/install-packages bench conformance
	@test -f build-asan/build.ninja || meson setup build-asan $(ASAN_SETUP)
	@ninja -C build-asan --quiet src/cli/isobar
	@ISOBAR=build-asan/src/cli/isobar /usr/bin/python3 tests/soak/mixed.py $(SOAK_SECONDS)

conformance: all
	@tools/install-packages conformance
	@tests/conformance/run $(BUILD)/src/cli/isobar

clean:
	@rm -rf build build-asan build-tsan build-fuzz build-boringssl $(RELEASE)

.PHONY: soak soak-mixed all test boringssl asan tsan fuzz fmt lint check-deps bench conformance clean
