package command

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/hook"
)

// Pin is the content of a hook's file when the run began. An empty digest means that
// there was no file.
type Pin struct{ Path, Digest string }

// Pins returns the programs and scripts that the command names, with their digests: if
// one of them changes, the hook is no longer the owner's. Those of a command line are
// guessed from its words. It omits files that this process cannot change, because
// nothing that a run starts can either; the system's own programs, which an update may
// replace while a run is parked; and data that the command names, which it may write
// itself. If a program in the workspace would be found before the intended one, its
// place is pinned as empty.
func (c Command) Pins() ([]Pin, error) {
	var pins []Pin
	for _, file := range c.programs() {
		if ofSystem(file) || !changeable(file) || slices.ContainsFunc(pins, func(p Pin) bool { return p.Path == file }) {
			continue
		}
		digest, err := digestOf(file)
		switch {
		case errors.Is(err, fs.ErrPermission):
			continue // the file is executable but not readable, so its content is unknown
		case err != nil:
			return nil, fmt.Errorf("the hook's program %s cannot be read: %w", file, err)
		}
		pins = append(pins, Pin{Path: file, Digest: digest})
	}
	return pins, nil
}

// Pinned is [Command.Run] with a check of the files before and after it, because a file
// that was changed in between may have been executed. If one has changed, the hook
// fails, so that a gate refuses. It is safe for concurrent use.
func (c Command) Pinned(pins []Pin) func(context.Context, hook.Call) (hook.Answer, error) {
	return func(ctx context.Context, told hook.Call) (hook.Answer, error) {
		if err := Unchanged(pins); err != nil {
			return hook.Answer{}, err
		}
		said, err := c.Run(ctx, told)
		if err == nil {
			err = Unchanged(pins)
		}
		if err != nil {
			return hook.Answer{}, err
		}
		return said, nil
	}
}

// Unchanged returns an error if one of the files has changed.
func Unchanged(pins []Pin) error {
	for _, p := range pins {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

// programs returns the absolute names of the files that the command runs, and the
// places in the workspace where its programs could be found.
func (c Command) programs() []string {
	files := c.among(c.plain(), false)
	for _, line := range c.lines() {
		files = append(files, c.among(c.splitWords(line), true)...)
	}
	return files
}

// among returns the files that words run. In a command line every word may be a
// program.
func (c Command) among(words []string, line bool) []string {
	var files []string
	script := false // the next word that is not an option is a program
	for i, w := range words {
		file, asked := c.inWorkspace(w), i == 0 || script
		data := regular(file) && !asked && !runs(file)
		if regular(file) && !data {
			files = append(files, file)
		}
		if !data && !strings.ContainsAny(w, "/$<>") && strings.Trim(w, ".") != "" && !strings.HasPrefix(w, "-") {
			files = append(files, c.found(w, c.search())...)
			if asked || line {
				files = append(files, c.first(w)...)
			}
		}
		script = script && strings.HasPrefix(w, "-") || interpreter(w)
	}
	return files
}

// first returns the program that $PATH leads to.
func (c Command) first(program string) []string {
	for _, dir := range c.search() {
		if file := filepath.Join(c.inWorkspace(dir), program); regular(file) {
			return []string{file}
		}
	}
	return nil
}

// interpreter reports whether a program runs the file in its arguments.
func interpreter(program string) bool {
	name := strings.TrimRight(filepath.Base(program), "0123456789.")
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "lua", "env", "run"}, name)
}

// runs reports whether a file is a program or a script.
func runs(file string) bool {
	info, err := os.Stat(file)
	if err != nil || info.Mode()&0o111 != 0 {
		return err == nil
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	start, _ := bufio.NewReader(f).Peek(2)
	return string(start) == "#!"
}

// ofSystem reports whether a file belongs to the operating system. A user who may write
// there controls this process anyway.
func ofSystem(file string) bool {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	return slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/lib/", "/lib/", "/System/", "/nix/store/"}, func(dir string) bool {
		return strings.HasPrefix(file, dir)
	})
}

// changeable reports whether this process may write or replace a file.
func changeable(file string) bool {
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file && changeable(real) {
		return true
	}
	for ; ; file = filepath.Dir(file) {
		if unix.Access(file, unix.W_OK) == nil {
			return true
		}
		if file == filepath.Dir(file) {
			return false
		}
	}
}

// digestOf returns the digest of a file's content, empty if there is none; a directory
// is not a program.
func digestOf(file string) (string, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return "", nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// check reads a pinned file completely each time, because size and times do not reveal
// the writes of a process that has it mapped.
func (p Pin) check() error {
	switch digest, err := digestOf(p.Path); {
	case err != nil:
		return fmt.Errorf("its file %s cannot be read any more: %w", p.Path, err)
	case digest != p.Digest:
		return fmt.Errorf("its file %s is not what it was when the run began; put it back, or start a new run", p.Path)
	}
	return nil
}
