package daemon

import (
	"net"
	"os"
)

// warn logs what an operator may not have meant.
func (d *Daemon) warn() {
	if os.Geteuid() == 0 {
		d.log.Warn("running as root", "meaning", "whoever may submit a job to this site, or to a peer of it, is root on this machine",
			"remedy", "run kithd as a user of its own")
	}
	if host, _, err := net.SplitHostPort(d.Address()); err == nil {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			d.log.Warn("listening without authentication", "meaning", "whoever reaches this address can run commands here, cancel jobs and drain the site",
				"address", d.Address(), "user", userName(), "remedy", "let only trusted machines reach it, see docs/security.md")
		}
	}
}
