// Package forecast says how long jobs run and when they start: as distributions, not as
// single numbers, and with a record of how often such ranges were right.
//
//	what has ended ──► History ──► Dist of a run time ──┐
//	                                                    ├──► Cast ──► scenarios of a scheduler
//	what has come in ──► Days ──► arrivals of a day ────┘                   │
//	                                                                        ▼
//	        Ledger ◄── Score ◄── what came true ◄── Recalibration ◄── Samples of the wait
//
// A raw distribution is hardly ever right about its own width: sites drift, users change.
// So every class of forecasts has a [Recalibration], which knows where in past distributions
// the truth lay, and answers the level that is asked for with the one that would have held.
//
// The package is pure: randomness comes in from outside, there is no clock, and all that it
// keeps has a bound.
package forecast
