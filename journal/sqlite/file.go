package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/journal"
)

// file checks that a path still leads to the open file.
type file struct {
	path, wal string
	db, log   identity
}

// identify records the identity of an open journal's files.
func identify(path string) (*file, error) {
	f := &file{path: path, wal: path + "-wal"}
	var err error
	if f.db, err = identityOf(f.path); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if f.log, err = identityOf(f.wal); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	return f, nil
}

// check fails if the path leads elsewhere. It runs after every commit.
func (f *file) check() error {
	if id, err := identityOf(f.path); err != nil || id != f.db {
		return fmt.Errorf("sqlite: %s: %w", f.path, journal.ErrReplaced)
	}
	if id, err := identityOf(f.wal); err != nil || id != f.log {
		return fmt.Errorf("sqlite: %s: %w", f.wal, journal.ErrReplaced)
	}
	return nil
}

// CheckPath returns why a path cannot name a journal, whatever exists there: a journal
// is a file, and some names have a special meaning in SQLite.
func CheckPath(path string) error {
	switch {
	case path == "":
		return errors.New("the path of the journal is empty")
	case path == ":memory:", strings.HasPrefix(path, "file:"):
		return fmt.Errorf("%q is a name of SQLite's, and a journal has the path of a file; one of that name is ./%s", path, path)
	case os.IsPathSeparator(path[len(path)-1]):
		return fmt.Errorf("%q is a directory's path, and a journal has that of a file", path)
	}
	return nil
}

// create creates the file before SQLite does, because a journal contains what the agent
// saw and must not be readable by others. It syncs the directory entry, so that an
// acknowledged journal is found after a power cut.
func create(path string) error {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

// MakeDir is os.MkdirAll that syncs new directories before it returns.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := MakeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems cannot sync a directory and do not need to.
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}

// The fields of the header of a SQLite file that identify its program (SQLite,
// "Database File Format", 1.3).
const (
	headerSize    = 100
	headerMagic   = "SQLite format 3\x00"
	atPageSize    = 16
	atWriteMode   = 18
	atChanges     = 24
	atPages       = 28
	atVersion     = 60
	atApplication = 68
	atValidFor    = 92

	writeModeWAL = 2
)

// inspect rejects a file that is not a journal of this version or an older one, before
// SQLite opens and possibly changes it. An empty file is a new journal.
func inspect(path string) error {
	info, err := os.Stat(path) // opening a pipe would wait for its other end
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file: %w", journal.ErrForeign)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() == 0 {
		return nil
	}
	h := make([]byte, headerSize)
	if _, err := io.ReadFull(f, h); err != nil || !bytes.HasPrefix(h, []byte(headerMagic)) {
		return journal.ErrForeign
	}
	number := binary.BigEndian.Uint32
	if err := checkOwner(int64(number(h[atApplication:])), int64(number(h[atVersion:]))); err != nil {
		return err
	}
	if err := checkRollback(path, h); err != nil {
		return err
	}
	return checkSize(path, info.Size(), h)
}

// checkRollback rejects a rollback log beside a journal, which uses another kind of
// log: SQLite would copy it into the file, so that a program that can create files
// there could write the journal's content. A killed process leaves such a log only
// before a file is a journal in WAL mode.
func checkRollback(path string, h []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // SQLite looks beside the file itself
	}
	made := binary.BigEndian.Uint32(h[atApplication:]) == applicationID && h[atWriteMode] == writeModeWAL
	if log, err := os.Stat(path + "-journal"); made && err == nil && log.Size() > 0 {
		return fmt.Errorf("beside it is %s-journal, which Pawl does not write and which could change what it says; remove that", path)
	}
	return nil
}

// checkOwner checks the two numbers that identify a file's program. Both are 0 in a
// file whose creation was interrupted.
func checkOwner(application, version int64) error {
	switch {
	case application != applicationID && (application != 0 || version != 0):
		return journal.ErrForeign
	case version > schemaVersion:
		return fmt.Errorf("it has format %d, this version knows %d: %w", version, schemaVersion, journal.ErrNewer)
	}
	return nil
}

// checkSize detects a truncated file. While there is a log the header may be ahead of
// the file.
func checkSize(path string, size int64, h []byte) error {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return nil
	}
	page := int64(binary.BigEndian.Uint16(h[atPageSize:]))
	if page == 1 {
		page = 65536
	}
	want := page * int64(binary.BigEndian.Uint32(h[atPages:]))
	current := bytes.Equal(h[atChanges:atChanges+4], h[atValidFor:atValidFor+4])
	if current && size < want {
		return fmt.Errorf("it has %d of %d bytes: %w", size, want, journal.ErrCorrupt)
	}
	return nil
}

// writable reports whether a file can be written, or whether files can be created in a
// directory.
func writable(path string) bool {
	const write = 2 // W_OK
	return syscall.Access(path, write) == nil
}
