package daemon

import (
	"net"
	"os"

	"kith/sitesched/executor"
)

// warn logs what an operator may not have meant.
func (d *Daemon) warn() {
	if os.Geteuid() == 0 {
		d.log.Warn("running as root", "meaning", "whoever may submit a job to this site, or to a peer of it, is root on this machine",
			"remedy", "run kithd as a user of its own")
	}
	for _, c := range d.runs.Capabilities() {
		if c.Name == executor.CapProcessLimit && !c.Available {
			d.log.Warn("processes of jobs are not bounded", "meaning", c.Detail,
				"remedy", "Delegate=yes or LimitNPROC= in the unit of kithd, ulimit -u in a shell")
		}
	}
	if host, _, err := net.SplitHostPort(d.Address()); err == nil {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			d.log.Warn("listening without authentication", "meaning", "whoever reaches this address can run commands here, cancel jobs and drain the site",
				"address", d.Address(), "user", userName(), "remedy", "let only trusted machines reach it, see docs/security.md")
		}
	}
}
