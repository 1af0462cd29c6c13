// Command kith-lab is for those who want to know whether Kith is right: it
// repeats the experiments of the papers (list, run), searches for schedules of
// faults that break a promise (faults, explore), and tries real sites on this
// machine (chaos, bench).
//
// Where to start: main.go has the list of verbs, each verb is a file of its
// name. What it shares with the other programs is in package cli. The work
// itself is in kith/testbed; here is what people see of it.
package main
