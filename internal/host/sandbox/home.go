package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// toolchains lists the directories of installed programs in a home directory. The rest
// is private.
var toolchains = []string{
	"go/bin", "sdk", "bin", ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/mise", ".local/share/pnpm", ".local/share/fnm",
	".cargo/bin", ".rustup", ".nvm", ".volta", ".fnm", ".bun/bin", ".deno/bin", ".pyenv", ".rbenv", ".rvm", ".asdf", ".sdkman", ".ghcup", ".opam", ".juliaup", ".dotnet",
	".gitconfig", ".config/git/config", ".config/git/ignore",
}

// packages lists directories of downloaded packages. Commands without a network see
// them, because they cannot download; others download into their own home directory.
var packages = []string{
	"go/pkg/mod", ".cargo/registry", ".cargo/git", ".m2/repository", ".nuget/packages", ".npm/_cacache", ".cache/pip", ".cache/uv", ".gem", ".bundle",
}

// secrets lists the places of credentials in a home directory. They are hidden even if
// the home directory is not.
var secrets = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".config/gh", ".config/hub", ".config/glab-cli",
	".config/pawl", ".git-credentials", ".config/git/credentials", ".password-store", ".local/share/keyrings", ".cargo/credentials", ".cargo/credentials.toml",
	".vault-token", ".terraform.d", ".config/op", ".config/sops", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history",
}

// Variables of the environment that name toolchains, and packages.
var (
	toolchainVariables = []string{"GOROOT", "RUSTUP_HOME", "NVM_DIR", "VIRTUAL_ENV", "JAVA_HOME"}
	packageVariables   = []string{"GOMODCACHE"}
)

// homeOf returns the home directory in an environment; empty if there is none.
func homeOf(env []string) string {
	home, ok := resolved(lookup(env, "HOME"))
	if !ok || home == "/" {
		return ""
	}
	return home
}

func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// installed returns the paths below a home directory that commands need to find their
// programs.
func installed(home string, env []string, network egress.Network) []string {
	names, variables := toolchains, toolchainVariables
	if network == egress.NetworkNone {
		names, variables = append(names[:len(names):len(names)], packages...), append(variables[:len(variables):len(variables)], packageVariables...)
	}
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(home, name))
	}
	paths = append(paths, filepath.SplitList(lookup(env, "PATH"))...)
	for _, name := range variables {
		if dir := lookup(env, name); filepath.IsAbs(dir) {
			paths = append(paths, dir)
		}
	}
	var shown []string
	for _, p := range existing(paths) {
		// A parent of the home directory would show all of it.
		if inside(p, home) && p != home {
			shown = append(shown, p)
		}
	}
	return shown
}

// privateHome creates the home directory of commands in a workspace. It is persistent,
// so that build results are reused, and used for nothing else, so that files in it do
// not run outside. If it cannot be persistent, it is a temporary one below temp.
func privateHome(workspace, temp string) (string, error) {
	sum := sha256.Sum256([]byte(workspace))
	if cache, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(cache, "pawl", "sandbox", hex.EncodeToString(sum[:12]))
		if os.MkdirAll(dir, 0o700) == nil && writable(dir) {
			return filepath.EvalSymlinks(dir)
		}
	}
	dir := filepath.Join(temp, "home")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("sandbox: make a home for commands: %w", err)
	}
	return dir, nil
}

// writable reports whether a file can be created in a directory.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".pawl-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}
