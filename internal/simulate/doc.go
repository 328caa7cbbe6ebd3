// Package simulate drives runs, trees of agents, trees of workflows, loops and goals through the
// real engine while everything around them goes wrong: processes that die before and
// after every append and every effect, processes that stall until they have lost their lease, models that
// fail in each of their ways, slow, deaf and panicking tools, and an operator
// who pauses, cancels, decides and talks at any moment. Whatever happens, the
// journal that is left must keep the promises that the house makes.
//
// Time is virtual, so hours of waiting cost nothing. A seed that fails prints
// the one line that plays it again.
package simulate
