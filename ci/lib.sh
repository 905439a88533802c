# shellcheck shell=bash
# Shared by the scripts of ci/; sourced by them. Every script stands in the repository's root afterwards.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
me=ci/${0##*/}
cores=$(nproc)

say() { echo "$me: $*"; }

# quietly LOG COMMAND…: output into LOG; shown, the end of it, when the command fails.
quietly() {
    local log=$1 rc
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null
    rc=$?
    [ $rc = 0 ] && return 0
    {
        echo "$me: failed ($rc): $*"
        grep -E 'error|Error|FAILED' "$log" | head -n 20
        echo "$me: the end of $log:"
        tail -n 30 "$log"
    } >&2
    return $rc
}

# build PRESET [TARGET…]: configures and builds one of CMakePresets.json; logs in its folder.
build() {
    local preset=$1 dir
    shift
    case $preset in release) dir=build ;; *) dir=build-$preset ;; esac
    quietly "$dir/configure.log" cmake --preset "$preset" || return
    quietly "$dir/build.log" cmake --build "$dir" -j "$cores" ${1:+--target "$@"}
}

# run_ctest DIRECTORY ARGUMENT…: ctest, then "N passed, N failed, N skipped" on a line; fails when a test does or none ran.
run_ctest() {
    local dir=$1 rc counts
    shift
    rm -f "$dir/ctest.xml"
    ctest --test-dir "$dir" --output-on-failure --no-tests=error --output-junit "$PWD/$dir/ctest.xml" "$@" </dev/null
    rc=$?
    counts=$(sed -n '/<testsuite /,/>/p' "$dir/ctest.xml" 2>/dev/null | tr '\n\t' '  ')
    count() { sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$counts"; }
    if [ -n "$counts" ]; then
        echo "$(($(count tests) - $(count failures) - $(count skipped) - $(count disabled))) passed, $(count failures) failed, $(count skipped) skipped"
    fi
    return $rc
}
