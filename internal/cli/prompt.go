package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// prompter shows questions to the person at the terminal, one at a time
// (perform.Env.AskInTurn).
type prompter struct {
	keys *keyboard
	p    *printer
	by   event.Principal
	// check is [control.Controller.CheckArgs].
	check func(context.Context, control.Pending, json.RawMessage) error
	// call returns what the journal has about the call of a question; nil if there is no
	// journal.
	call func(ctx context.Context, id string) askedCall
	// suspend gives the terminal to the editor until resume is called; nil without a live
	// region.
	suspend func() (resume func(), err error)
	// chats reports that what is allowed holds for the session of the run.
	chats bool
	// editor is the command that opens a text, "" for none.
	editor string
	// withdrawn is when the last question was withdrawn, zero after an answer.
	withdrawn time.Time
}

// misfire is the pause after a withdrawn question, so that an answer to it does not
// answer the next question.
const misfire = time.Second

// patient bounds how long a question waits until the events before it are written.
// Questions of other runs of a tree appear here too, but their events do not.
const patient = time.Second

// asking configures how environments get decisions: from the person at the
// terminal, from the mode that the owner chose (deny, all), or not at all. All runs
// of a tree share one person, who decides one call at a time.
func (s *session) asking(mode agent.ApproveMode, p *printer) func(*perform.Env) {
	var ask func(context.Context, event.Question) (event.Resolution, error)
	switch {
	case mode == agent.ApproveAll:
		ask = answerAll(event.ApprovalApproved, "--approve all")
	case mode == agent.ApproveDeny:
		ask = answerAll(event.ApprovalRejected, "--approve deny")
	case screenOf(s.app.in, os.Getenv).terminal && p.screen.terminal:
		p.asks = true
		ask = inTurn((&prompter{
			keys: s.app.typed(), p: p, by: itsUser(), check: s.controller.CheckArgs, call: s.callOf, chats: s.chats,
			editor: cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")),
		}).ask)
	default:
		p.cannotAsk = true
	}
	return func(env *perform.Env) { env.Ask, env.AskInTurn = ask, true }
}

// inTurn shows one question at a time.
func inTurn(
	ask func(context.Context, event.Question) (event.Resolution, error),
) func(context.Context, event.Question) (event.Resolution, error) {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context, p event.Question) (event.Resolution, error) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return event.Resolution{}, ctx.Err()
		}
		defer func() { <-turn }()
		return ask(ctx, p)
	}
}

func answerAll(kind event.ApprovalKind, by string) func(context.Context, event.Question) (event.Resolution, error) {
	return func(_ context.Context, q event.Question) (event.Resolution, error) {
		if form, is := q.What.(event.FormAsked); is && form.Command != "" {
			return event.Resolution{}, errors.New("a person has to run a command first")
		}
		if form, is := q.What.(event.FormAsked); is && form.Consent != "" && kind == event.ApprovalApproved {
			return event.Resolution{Kind: event.ApprovalAnswered, Args: json.RawMessage("{}"), Approver: by, Reason: "decided by the flag " + by}, nil
		}
		kind := kind
		if !slices.Contains(q.Takes, kind) { // to approve everything invents no input
			kind = event.ApprovalRejected
		}
		return event.Resolution{Kind: kind, Approver: by, Reason: "decided by the flag " + by}, nil
	}
}

func (q *prompter) ask(ctx context.Context, pending event.Question) (event.Resolution, error) {
	if err := q.pause(ctx); err != nil {
		return event.Resolution{}, err
	}
	q.catchUp(ctx, pending.ID)
	q.keys.begin()
	defer q.keys.end()
	q.shows(ctx, pending)
	if why := view.AskedBy(pending); why != "" && pending.Kind != event.QuestionForm {
		q.p.ask(faint, "  "+why+"\n")
	}
	d, err := q.decide(ctx, pending)
	if ctx.Err() != nil {
		q.withdrawn = time.Now()
		q.p.withdraw(" (no answer is needed any more)")
		return d, ctx.Err()
	}
	q.withdrawn = time.Time{}
	if err != nil {
		q.p.withdraw(" (no answer)")
		return d, err
	}
	q.p.answered()
	d.Approver, d.Principal = q.by.Name, q.by
	return d, err
}

// shows prints the question: the call, or the difference that it would make to a
// file.
func (q *prompter) shows(ctx context.Context, pending event.Question) {
	about, diff := askedAbout(pending), ""
	var known askedCall
	if call, is := pending.Asking.(event.ToolPendingApproval); is {
		if q.call != nil {
			known = q.call(ctx, pending.ID)
		}
		about = terminal.Marked(string(call.Args))
		if path, changed := q.change(known.dir, call); path != "" {
			about, diff = oneLine(path), changed
		}
	}
	if form, is := pending.What.(event.FormAsked); is {
		q.p.ask(yellow, fmt.Sprintf("%s (%s) asks: %s\n", oneLine(pending.Subject), pending.ID, terminal.Marked(pending.Reason)))
		if form.URL != "" {
			q.p.ask(plain, "  go to the page of "+oneLine(form.Host)+" yourself: "+oneLine(form.URL)+"\n")
		}
		return
	}
	q.p.ask(yellow, fmt.Sprintf("approve %s: %s %s?\n", pending.ID, pending.Subject, about))
	if diff != "" {
		q.p.ask(plain, diff)
	}
	for _, line := range append(runsFiles(pending), known.lines()...) {
		q.p.ask(faint, "  "+line+"\n")
	}
}

// runsFiles lists the files that a call runs: the approval covers their content.
func runsFiles(q event.Question) []string {
	asked, _ := q.What.(event.CallAsked)
	var lines []string
	for _, f := range asked.Runs {
		if f.Digest == "" {
			lines = append(lines, "runs "+oneLine(f.Path)+", whose content could not be read")
		} else {
			lines = append(lines, "runs "+oneLine(f.Path)+" as it is now (sha256 "+f.Digest[:min(16, len(f.Digest))]+"…)")
		}
	}
	return lines
}

// askedAbout returns the subject of a question as JSON.
func askedAbout(q event.Question) string {
	b, err := json.Marshal(q.What)
	if err != nil {
		return ""
	}
	return terminal.Marked(string(b))
}

// pause waits after a withdrawn question.
func (q *prompter) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(q.withdrawn.Add(misfire))):
	}
	return ctx.Err()
}

// catchUp waits until the terminal shows the model's text before the call and the
// results of earlier calls, which the person needs to decide.
func (q *prompter) catchUp(ctx context.Context, call string) {
	written := q.p.writtenBefore(call)
	if written == nil {
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	case <-time.After(patient):
	}
}

// decide repeats the question until there is an answer.
func (q *prompter) decide(ctx context.Context, pending event.Question) (d event.Resolution, err error) {
	if form, is := pending.What.(event.FormAsked); is {
		return q.fill(ctx, form)
	}
	answers, edits := "  [y]es, [n]o, n and a reason: ", slices.Contains(pending.Takes, event.ApprovalEdited)
	if edits {
		answers = "  [y]es, [n]o, n and a reason, [e]dit: "
	}
	if pending.Offer != nil {
		answers = "  [y]es, [n]o, n and a reason, [a]llow, [e]dit: "
		scope := "run"
		if q.chats {
			scope = "session"
		}
		q.p.ask(faint, "  a approves this call and allows for this "+scope+": "+oneLine(terminal.Marked(pending.Offer.String()))+"\n")
	}
	keys := &live.Choice{ID: pending.ID, Allow: pending.Offer != nil, Edit: edits}
	for d.Kind == "" {
		line, err := q.choose(ctx, answers, keys)
		if err != nil {
			return d, err
		}
		d = decision(line)
		if d.Remember && pending.Offer == nil || d.Kind == event.ApprovalEdited && !edits {
			d = event.Resolution{}
		}
		switch d.Kind {
		case "":
			q.p.ask(faint, howToAnswer(pending.Offer != nil, edits))
		case event.ApprovalEdited:
			if d.Args, err = q.edit(ctx, pending); err != nil {
				return d, err
			}
			if d.Args == nil {
				d.Kind = ""
			}
		}
	}
	return d, nil
}

func howToAnswer(offered, edits bool) string {
	switch {
	case !edits:
		return "  answer y to approve, n to reject, or \"n REASON\" to say why\n"
	case offered:
		return "  answer y to approve, n to reject, \"n REASON\" to tell the model why, a to approve it and to allow what is shown above, or e to change the arguments\n"
	}
	return "  answer y to approve, n to reject, \"n REASON\" to tell the model why, or e to change the arguments\n"
}

// line reads one line of text.
func (q *prompter) line(ctx context.Context, question string) (string, error) {
	return q.choose(ctx, question, nil)
}

// choose reads one line, or one of the keys of a choice in a live region.
func (q *prompter) choose(ctx context.Context, question string, keys *live.Choice) (string, error) {
	for {
		q.p.prompt(question, keys)
		line, err := q.keys.line(ctx)
		if err != nil || utf8.ValidString(line) {
			return line, err
		}
		q.p.ask(red, "  the answer is not UTF-8: set this terminal to UTF-8, or keep to ASCII\n")
	}
}

// decision parses an answer. Only a clear word decides, because a slip must neither
// approve nor reject a call.
func decision(line string) event.Resolution {
	word, why, _ := strings.Cut(strings.TrimSpace(line), " ")
	why = strings.TrimSpace(why)
	switch word = strings.ToLower(strings.TrimRight(word, ",:")); {
	case word == "n", word == "no":
		if why == "" {
			why = "declined"
		}
		return event.Resolution{Kind: event.ApprovalRejected, Reason: why}
	case why != "":
		return event.Resolution{}
	case word == "y", word == "yes":
		return event.Resolution{Kind: event.ApprovalApproved}
	case word == "a", word == "allow":
		return event.Resolution{Kind: event.ApprovalApproved, Remember: true}
	case word == "e", word == "edit":
		return event.Resolution{Kind: event.ApprovalEdited}
	}
	return event.Resolution{}
}

// itsUser is the principal of this command line: a user that can open the journal's
// file may do everything with it.
func itsUser() event.Principal {
	return event.Principal{Name: whoAmI(), Role: string(access.Admin), Proof: event.ProofUser}
}

// whoAmI returns the user's name for records.
func whoAmI() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
