package config

import (
	"fmt"
	"strings"
)

// Change is a key with another value.
type Change struct {
	Key string
	// Old and New are as a file writes them.
	Old, New string
	// Reloads says that a running kithd takes the new value up.
	Reloads bool
}

// Changes returns the keys in which two configurations differ, in the order of
// the page. The list of peers is one key.
func Changes(old, next *Config) []Change {
	var changes []Change
	was := old.Knobs()
	for i, k := range next.Knobs() {
		if a, b := was[i].write(was[i].get()), k.write(k.get()); a != b {
			changes = append(changes, Change{k.Key, a, b, k.Reloads})
		}
	}
	if a, b := peerList(old.Peers), peerList(next.Peers); a != b {
		changes = append(changes, Change{"peers", a, b, true})
	}
	return changes
}

// peerList writes peers in one line.
func peerList(peers []Peer) string {
	parts := make([]string, len(peers))
	for i, p := range peers {
		parts[i] = strings.TrimSpace(fmt.Sprintf("%s %s", p.Site, p.Address))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Reloaded returns a running configuration with what it can take up of the next.
func Reloaded(running, next *Config) Config {
	c := *next
	was := running.Knobs()
	for i, k := range c.Knobs() {
		if !k.Reloads {
			k.put(was[i].get())
		}
	}
	return c
}
