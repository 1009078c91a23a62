"""Fetch the git repository that a job names as its work directory, on every node."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Mapping

    from monarch_client.runner.base.config import Repository


def repository_environment(repository: Repository, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` with the variables that SCRIPT reads."""
    return {
        **env,
        "MPORTAL_GIT_URL": repository.url,
        "MPORTAL_GIT_REF": repository.ref,
        # No terminal is there to answer a prompt.
        "GIT_TERMINAL_PROMPT": "0",
    }


# Runs in the work directory, where folders of the job may exist: `git clone` would refuse it.
# The token is given by a helper, to the repository's own host alone: as a part of the URL it would
# be in the list of processes, in error messages and in .git/config.
SCRIPT = r"""
url=$MPORTAL_GIT_URL ref=$MPORTAL_GIT_REF
if ! command -v git >/dev/null; then
    echo "git is not installed on this node: choose an image that has it" >&2
    exit 1
fi
ssh="ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
if [ -n "$GIT_SSH_KEY" ]; then
    key=$(umask 077 && mktemp) || exit 1
    trap 'rm -f "$key"' EXIT
    printf '%s\n' "$GIT_SSH_KEY" >"$key"
    ssh="$ssh -o IdentitiesOnly=yes -i $(printf %q "$key")"
fi
export GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-$ssh}"
options=(-c advice.detachedHead=false)
if [ -n "$GIT_TOKEN" ] && [ "${url#https://}" != "$url" ]; then
    host=${url#https://} host=${host%%/*}
    helper='!f() { echo username=x-access-token; echo "password=$GIT_TOKEN"; }; f'
    options+=(-c "credential.https://$host.helper=" -c "credential.https://$host.helper=$helper")
fi
# A filter such as git-lfs fetches at checkout.
git() { command git "${options[@]}" "$@"; }
git init -q . || exit 1
git remote add origin "$url" 2>/dev/null || git remote set-url origin "$url" || exit 1
if git fetch -q --depth 1 origin "${ref:-HEAD}"; then
    commit=FETCH_HEAD
elif [ -z "$ref" ]; then
    # For a server that serves whole repositories only.
    git fetch -q origin HEAD || exit 1
    commit=FETCH_HEAD
else
    # The same, for a short commit id or a server that serves no single commits.
    git fetch -q --force --tags origin '+refs/heads/*:refs/remotes/origin/*' || exit 1
    commit=$(git rev-parse -q --verify "origin/$ref^{commit}") || commit=$ref
fi
commit=$(git rev-parse -q --verify "$commit^{commit}") || {
    echo "there is no branch, tag or commit $ref" >&2
    exit 1
}
git checkout -q --force "$commit" || exit 1
echo "workdir: $url at $commit"
"""
