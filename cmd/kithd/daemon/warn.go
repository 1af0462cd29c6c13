package daemon

import (
	"os"

	"kith/sitesched/executor"
)

// warn logs what an operator may not have meant.
func (d *Daemon) warn() {
	if os.Geteuid() == 0 {
		d.log.Warn("running as root", "meaning", "every user who may submit a job to this site, or to a peer of it, is root on this machine",
			"remedy", "run kithd as a user of its own")
	}
	for _, c := range d.runs.Capabilities() {
		if c.Name == executor.CapProcessLimit && !c.Available {
			d.log.Warn("processes of jobs are not bounded", "meaning", c.Detail,
				"remedy", "Delegate=yes or LimitNPROC= in the unit of kithd, ulimit -u in a shell")
		}
	}
	if d.cfg.Listen.AllowOwnUID {
		d.log.Warn("the account of kithd may call at the unix socket", "meaning", "every job runs under it, and can do here what its operator can",
			"remedy", "take listen.allow_own_uid out once the site does more than try things out")
	}
}
