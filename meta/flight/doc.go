// Package flight is the flight recorder of a site: it writes down all that its engines are
// fed, and plays it again, bit for bit.
//
// # What is recorded
//
// The engines read no clock, draw no random numbers and do no I/O (package meta): what they do
// follows from their state and from what they are fed. A recording is an image of all they
// hold at one instant (package internal/frozen), and every event after it with its time. With
// each goes a digest of the effects that came of it, and from time to time one of the whole
// state: so the player can say whether it comes to the same, and where it first does not.
//
// A recording is a ring of files. Each begins with an image of its own, so that each can be
// played alone and the oldest can go.
//
// # What is not
//
// What jobs run (commands, scripts, environments, inline inputs), what they left, and what
// secrets are proved by: the engines never look into any of it, and of it the recording has
// the number of bytes. The last lines of stderr of failed tasks stand as other words, of which
// only tells whether two were equal. Names, users, folders, addresses and reasons that people
// gave are in it. Keys, tokens and certificates' keys never come near the engines.
//
// # Where to start
//
// format.go says what a file looks like, record.go writes it for a driver of an engine,
// ring.go keeps the files and never lets the driver wait for a disk, player.go plays one, and roll.go
// makes the next file of a large site by playing the one that is open.
package flight
