package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/journal/sqlite"
)

const journalName = "journal.db"

// pointerTo returns the file that names the folder of a journal in another place:
// .pawl/journal beside .pawl/journal.db. It is empty for a journal with another
// path.
func pointerTo(journal string) string {
	if filepath.Base(journal) != journalName || filepath.Base(filepath.Dir(journal)) != ".pawl" {
		return ""
	}
	return filepath.Join(filepath.Dir(journal), "journal")
}

// followed returns the place of a journal: where its pointer leads, if it has one.
// It rejects a folder outside Pawl's own place for journals, because the pointer
// may come from untrusted files.
func followed(journal string) (string, error) {
	pointer := pointerTo(journal)
	if pointer == "" || schemeOf(journal) != "" {
		return journal, nil
	}
	text, err := os.ReadFile(pointer)
	if errors.Is(err, fs.ErrNotExist) {
		return journal, nil
	}
	if err != nil {
		return "", usagef("the file that says where the journal is cannot be read: %w; name the journal with --journal", err)
	}
	state, err := launch.StateDir()
	if err != nil {
		return "", usageError(err)
	}
	folder := filepath.Clean(strings.TrimSuffix(string(text), "\n"))
	if rel, err := filepath.Rel(state, folder); err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", usagef("%s says that the journal is in %s, which is not below %s; delete %[1]s, or name the journal with --journal", pointer, onOneLine(folder), state)
	}
	return filepath.Join(folder, journalName), nil
}

// folderFor returns the folder for a directory's journal that is outside the
// directory.
func folderFor(dir string) (string, error) {
	state, err := launch.StateDir()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(state, strings.ReplaceAll(filepath.Base(dir), "/", "root")+"-"+hex.EncodeToString(sum[:6])), nil
}

// placeJournal decides the place of a new journal. In the landlock tier commands
// may write the whole workspace, so the journal gets its own folder, which
// [app.point] writes to the pointer.
func (a *app) placeJournal(m *sandbox.Machine) error {
	pointer := pointerTo(a.journalPath)
	if m.Tier() != sandbox.Landlock || pointer == "" || a.journalPath != defaultJournal() || os.Getenv("PAWL_JOURNAL") != "" { // the journal was named
		return nil
	}
	if _, err := os.Lstat(a.journalPath); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	folder, err := folderFor(filepath.Dir(filepath.Dir(a.journalPath)))
	if err != nil {
		return usageError(err)
	}
	a.journalPath, a.pointFrom = filepath.Join(folder, journalName), a.journalPath
	return nil
}

// point writes the pointer of a journal that [app.placeJournal] moved, before the
// journal exists, so that it can always be found again.
func (a *app) point() error {
	if a.pointFrom == "" {
		return nil
	}
	makeHome(a.pointFrom)
	folder := filepath.Dir(a.journalPath)
	if err := sqlite.MakeDir(folder); err != nil {
		return usagef("the folder of the journal cannot be made: %w; name another place with --journal", err)
	}
	pointer := pointerTo(a.pointFrom)
	// Two processes that start at once write the same content.
	made, err := os.CreateTemp(filepath.Dir(pointer), "journal-*")
	if err == nil {
		_, err = made.WriteString(folder + "\n")
		err = errors.Join(err, made.Close())
		if err == nil {
			err = os.Rename(made.Name(), pointer)
		}
		if err != nil {
			_ = os.Remove(made.Name())
		}
	}
	if err != nil {
		return usagef("the file that says where the journal is cannot be written: %w; name a journal outside of the workspace with --journal", err)
	}
	return nil
}

// moveJournal returns what to do about a journal in the workspace.
func moveJournal(e *launch.JournalError) string {
	dir := filepath.Dir(e.Journal)
	pointer := pointerTo(e.Journal)
	if pointer != "" {
		dir = filepath.Dir(dir)
	}
	folder, err := folderFor(dir)
	if err != nil {
		return e.Error()
	}
	// An existing file there is another journal.
	for at, n := folder, 2; exists(filepath.Join(folder, filepath.Base(e.Journal))); n++ {
		folder = fmt.Sprintf("%s-%d", at, n)
	}
	if !exists(e.Journal) {
		return fmt.Sprintf("%s: --journal %s", e.Error(), shellWord(filepath.Join(folder, filepath.Base(e.Journal))))
	}
	move := fmt.Sprintf("mkdir -p %s && mv %s* %[1]s/", shellWord(folder), shellWord(e.Journal))
	if pointer != "" {
		return fmt.Sprintf("%s. This moves it, and every command finds it there:\n  %s && echo %s > %s", e.Error(), move, shellWord(folder), shellWord(pointer))
	}
	return fmt.Sprintf("%s. This moves it; then name it with --journal %s:\n  %s", e.Error(), shellWord(filepath.Join(folder, filepath.Base(e.Journal))), move)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
