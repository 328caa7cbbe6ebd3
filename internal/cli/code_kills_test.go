package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// messages returns the text of all messages in the journal, one a line.
func (p project) messages() string {
	p.t.Helper()
	s, err := sqlite.Open(p.t.Context(), filepath.Join(p.dir, ".pawl", "journal.db"), sqlite.Options{ReadOnly: true})
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.Close()
	rows, err := s.Runs(p.t.Context(), journal.Filter{Roots: true})
	if err != nil {
		p.t.Fatal(err)
	}
	var all strings.Builder
	for _, row := range rows {
		for e, err := range drive.AsStored(p.t.Context(), s, row.ID, event.TypeRunStarted, event.TypeInputReceived) {
			if err != nil {
				p.t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case event.RunStarted:
				all.WriteString(d.Input.Parts.Text() + "\n")
			case event.InputReceived:
				all.WriteString(d.Text + "\n")
			}
		}
		sent, err := s.Inbox(p.t.Context(), row.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, c := range sent {
			all.WriteString(c.Text + "\n")
		}
	}
	return all.String()
}

// shown reports whether a live region has shown a message as sent: printed, or as one that
// is not read yet.
func (y *typist) shown(message string) bool {
	return strings.Contains(y.seen(), "\x1b[1m> "+message) || strings.Contains(y.seen(), "↳ "+message)
}

// A process is killed while messages are typed and an answer streams, and the next one
// goes on with the session. PAWL_KILLS kills a hundred, PAWL_LONG ten.
func TestNoMessageThatIsShownAsSentIsLostByAKill(t *testing.T) {
	kills := 3
	switch {
	case os.Getenv("PAWL_KILLS") != "":
		kills = 100
	case os.Getenv("PAWL_LONG") != "":
		kills = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := streamsWords(t, 300)
	go func() {
		for {
			select {
			case s.allow <- 1:
			case <-t.Context().Done():
				return
			}
		}
	}()
	p := s.project(t)
	args, sent := []string{"--agent", "agent.yaml"}, 0
	var acknowledged []string
	for kill := range kills {
		y, process := p.inRegion(append([]string{"--config", "config.yaml"}, args...)...)
		at := len(y.seen()) + 200 + random.IntN(12000)
		var typed []string
		for i := 0; i == 0 || len(y.seen()) < at && i < 40; i++ {
			message := fmt.Sprintf("message%04dx", sent)
			sent++
			typed = append(typed, message)
			y.types(message + "\r")
			if i == 0 || i%3 == 2 {
				p.eventually("a message is sent", func() bool { return y.shown(message) || i > 0 && len(y.seen()) >= at })
			}
		}
		_ = process.Process.Signal(syscall.SIGKILL)
		process.wait()
		<-y.done
		for _, m := range typed {
			if y.shown(m) {
				acknowledged = append(acknowledged, m)
			}
		}
		journalled := p.messages()
		for _, m := range acknowledged {
			if !strings.Contains(journalled, m+"\n") {
				t.Fatalf("kill %d: %s was shown as sent and is lost; %d messages were typed", kill+1, m, sent)
			}
		}
		args = []string{"--resume", p.newest()}
	}
	t.Logf("%d kills, %d messages typed, %d shown as sent, 0 of those lost", kills, sent, len(acknowledged))
	if len(acknowledged) < kills/2 {
		t.Errorf("only %d messages of %d kills were shown as sent", len(acknowledged), kills)
	}
}
