package config

import (
	"fmt"
	"strings"
)

// TOML returns the configuration as a file with every key.
func (c *Config) TOML() []byte {
	var b strings.Builder
	section := ""
	for _, k := range c.Knobs() {
		table, name, ok := strings.Cut(k.Key, ".")
		if !ok {
			table, name = "", k.Key
		}
		if table != section {
			fmt.Fprintf(&b, "\n[%s]\n", table)
			section = table
		}
		fmt.Fprintf(&b, "%s = %s\n", name, k.write(k.get()))
	}
	for i := range c.Peers {
		b.WriteString("\n[[peers]]\n")
		for _, k := range c.Peers[i].Knobs() {
			fmt.Fprintf(&b, "%s = %s\n", strings.TrimPrefix(k.Key, "peers."), k.write(k.get()))
		}
	}
	return []byte(b.String())
}
