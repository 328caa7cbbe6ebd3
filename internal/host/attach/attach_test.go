package attach_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/internal/host/attach"
)

func TestAFileIsWhatItsFirstBytesSay(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"photo.txt", "\x89PNG\r\n\x1a\nxx", "image/png"},
		{"photo.png", "\xff\xd8\xff\xe0", "image/jpeg"},
		{"a", "GIF89a", "image/gif"},
		{"a", "GIF87a", "image/gif"},
		{"a", "RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"},
		{"a", "%PDF-1.7\n\xff", "application/pdf"},
		{"photo.png", "no photo", "text/plain"},
		{"log", "\x1b[31mred\x1b[0m\r\n\tindented\f", "text/plain"},
		{"a", "żółw", "text/plain"},
	} {
		m, err := attach.Data(c.name, []byte(c.content))
		if err != nil || m.MediaType != c.want || m.Name != c.name || string(m.Data) != c.content {
			t.Errorf("%q: %+v: %v", c.content, m, err)
		}
	}
	for content, want := range map[string]error{
		"PK\x03\x04":                          attach.ErrType,
		"RIFF\x00\x00\x00\x00WAVE":            attach.ErrType,
		"latin \xe9":                          attach.ErrType,
		"\x7fELF":                             attach.ErrType,
		strings.Repeat("a", attach.MaxText+1): attach.ErrTooLarge,
		"GIF89a" + strings.Repeat("\x00", attach.MaxFile): attach.ErrTooLarge,
	} {
		if _, err := attach.Data("a", []byte(content)); !errors.Is(err, want) {
			t.Errorf("%.20q: %v", content, err)
		}
	}
	if _, err := attach.Data("a", nil); err == nil {
		t.Error("an empty file is taken")
	}
	if _, err := attach.Data("caf\xe9.txt", []byte("hi")); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("a name that is no text: %v", err)
	}
}

func TestFilesAreReadInOrderAndWithinBounds(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	note, photo := write("note.md", []byte("hi")), write("photo", append([]byte("GIF89a"), bytes.Repeat([]byte{0}, 14<<20)...))
	all, err := attach.Files(note, photo)
	if err != nil || len(all) != 2 || all[0].Name != "note.md" || all[1].MediaType != "image/gif" {
		t.Fatalf("%d files: %v", len(all), err)
	}
	if _, err := attach.Files(photo, photo); !errors.Is(err, attach.ErrTooLarge) || !strings.Contains(err.Error(), photo) {
		t.Errorf("together: %v", err)
	}
	if _, err := attach.Files(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := attach.Files(dir); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := attach.Files(slices.Repeat([]string{note}, attach.MaxFiles+1)...); !errors.Is(err, attach.ErrTooMany) {
		t.Errorf("too many: %v", err)
	}
}

func TestPipeIsReadOnlyIfItHasAWriter(t *testing.T) {
	idle := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(idle, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := attach.File(idle); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("a pipe that nobody writes: %v", err)
	}
	if _, err := attach.File("/dev/zero"); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a device: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		w.WriteString("a note")
		w.Close()
	}()
	if m, err := attach.File(fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil || string(m.Data) != "a note" {
		t.Errorf("a shell's substitution: %q: %v", m.Data, err)
	}
}
