# Sourced by scripts that need tools written in Python, behind localstack/common.sh and prepare.sh. PYTHON is the one to make them with.

# environment NAME LOCK SIZE: makes the virtual environment of a lock file once a machine, and says in ENVIRONMENT where it is.
environment() {
  local name=$1 locked=$2 folder=${XDG_CACHE_HOME:-$HOME/.cache}/runlane
  ENVIRONMENT=$folder/$name-$("$PYTHON" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()[:16])' "$locked")
  if installed; then return; fi
  mkdir -p "$folder"
  lock 8 "$ENVIRONMENT.lock" "prepares the same tools"
  if ! installed; then
    say "installing $name in $ENVIRONMENT (once a machine: $3, under a minute)"
    rm -rf "$ENVIRONMENT"
    "$PYTHON" -m venv "$ENVIRONMENT/venv"
    "$ENVIRONMENT/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$locked" >&2
    touch "$ENVIRONMENT/complete" # last: a half-made folder is thrown away, never used
  fi
  exec 8>&-
}

installed() { [ -f "$ENVIRONMENT/complete" ] && "$ENVIRONMENT/venv/bin/python" -c '' 2>/dev/null; }
