package stop

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// Message returns the text for the model: of a nudge as a user message, of a blocked
// call as its result.
func Message(d event.Stuck) string {
	if d.Action == event.StuckBlock {
		return refusal(d)
	}
	switch Pattern(d.Pattern) {
	case SameCall:
		return fmt.Sprintf("You have called %s with the same arguments %d times in a row, and nothing new came of it. "+
			"The same call will not be run again. Use the result that you have, change the arguments, or take another way.", d.Tool, d.Count)
	case AlternatingCalls:
		return "You have made the same two calls in turn several times, and nothing new came of it. " +
			"They will not be run again in this way. Use the results that you have, or take another way."
	case SameError:
		return fmt.Sprintf("Your last %d calls all failed with the same kind of error. "+
			"Read the newest error closely, and change what causes it before you call again.", d.Count)
	case UnchangedTree:
		return fmt.Sprintf("In %d cycles you have edited files or run commands, and the files of the workspace are as they were before: "+
			"the edits failed, changed nothing, or were taken back. Look at a file before you change it, take another way, "+
			"or, if no file has to change any more, finish the task.", d.Count)
	}
	return fmt.Sprintf("You have said the same %d times without calling a tool. "+
		"Take the next step of the task, or say what the task asks you to say when it is done.", d.Count)
}

func refusal(d event.Stuck) string {
	switch Pattern(d.Pattern) {
	case SameError:
		return fmt.Sprintf("this call was not run, because your last %d calls all failed with the same kind of error. "+
			"Read the newest error closely and find out what causes it before you call %s again; that call will be run. "+
			"If the calls go on failing like this, the run ends", d.Count, d.Tool)
	case UnchangedTree:
		return fmt.Sprintf("this call was not run, because in %d cycles your edits and commands have left the files of the workspace as they were. "+
			"Look at the file that has to change and decide what will be different in it, or finish the task if nothing has to change any more. "+
			"Your next edit or command will be run. If the files stay as they are, the run ends", d.Count)
	}
	return "this call was not run, because it repeats earlier calls with nothing new in between, and its result is " +
		"above. Do not make it again: use that result, change the arguments, or take another way. " +
		"If it is repeated once more, the run ends"
}
