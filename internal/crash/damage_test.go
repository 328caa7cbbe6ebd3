package crash

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func TestADamagedRunIsNotResumedAndVerifySaysWhere(t *testing.T) {
	w := newWorld(t, `
- tool_calls:
    - {name: shell.exec, arguments: {command: "touch started; sleep 60"}}
- tool_calls:
    - {name: shell.exec, arguments: {command: "echo ran >> effects"}}
- text: done
`)
	park(t, w)
	row, records, _ := w.theRun(t)
	called := slices.IndexFunc(records, func(r journal.Record) bool { return r.Type == string(event.TypeToolCall) })
	seq := fmt.Sprint(records[called].Seq)
	db, err := sql.Open("sqlite", w.path(".pawl/journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE commits SET body = replace(body, 'sleep 60', 'sleep 61') WHERE ` + seq + ` BETWEEN seq - events + 1 AND seq`); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"resume", "verify"} {
		var out bytes.Buffer
		cmd := w.command("runs", verb, row.ID)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if said := out.String(); err == nil || !strings.Contains(said, "damaged at event "+seq) {
			t.Errorf("%s: %v\n%s\nwant it to name event %s", verb, err, said, seq)
		}
	}
	if effects := w.read(t, "effects"); effects != "" {
		t.Errorf("a damaged run went on: %q", effects)
	}
}
