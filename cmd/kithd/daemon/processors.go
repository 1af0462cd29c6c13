package daemon

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"kith/cmd/kithd/members"
	"kith/internal/job"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/apart"
	"kith/store/raftstore"
)

// ProcessorsFolder is the folder in the data folder of the machine that has the processors of a site of
// several members: files of what runs there, and which lead it has followed.
const ProcessorsFolder = "processors"

// machine is how a member that leads reaches the machine that has the processors of the site.
type machine struct {
	dial func(ctx context.Context) (net.Conn, error)
	lead *raftstore.Lead
	// again is told that the site must be loaded again.
	again chan string
}

// newDriver makes what drives that machine.
func (d *Daemon) newDriver(l *leadParts, in *inbox) *apart.Driver {
	m := &d.cfg.Members
	return apart.NewDriver(apart.DriverConfig{
		Site: d.siteID(), Member: m.Self, Machine: m.Executor, Lead: l.machine.lead.Number(), Version: Version(), Processors: d.cfg.Processors(),
		Lost: m.ExecutorLost, MostMessage: maxMessage, Dial: l.machine.dial, Confirm: l.machine.lead.Confirm, Tell: in.tell, Now: in.clock.now, SinceBoot: in.clock.sinceBoot,
		Files: d.files, Runs: d.runs, Peers: d.links, Log: d.log,
		Again: func(why string) {
			select {
			case l.machine.again <- why:
			default: // it was told already
			}
		},
	})
}

// liveElsewhere reads the output of what runs at another machine of the site; nil where all runs here.
func (d *Daemon) liveElsewhere() func(context.Context, job.AttemptID, string, int64, int, time.Duration) ([]byte, bool, error) {
	if l := d.options.lead; l == nil || l.machine == nil {
		return nil
	}
	return func(ctx context.Context, a job.AttemptID, name string, offset int64, limit int, wait time.Duration) ([]byte, bool, error) {
		return d.driver.ReadLive(ctx, a, name, offset, limit, wait)
	}
}

// openWorker starts what runs the jobs of the site at this machine, if it is the one.
func (m *Member) openWorker() error {
	if m.cfg.Members.Executor != m.cfg.Members.Self {
		return nil
	}
	own := ownHost(m.cfg, m.site)
	w, err := apart.OpenWorker(apart.WorkerConfig{
		Site: job.SiteID(m.cfg.Site), Machine: m.cfg.Members.Self, Cluster: m.cluster(), Version: Version(), Folder: filepath.Join(m.cfg.Data, ProcessorsFolder),
		Processors: m.cfg.Processors(), Lost: m.cfg.Members.ExecutorLost, QuotaBytes: m.cfg.Files.QuotaBytes, KeepFreeBytes: m.cfg.Files.KeepFreeBytes, MaxFileBytes: m.cfg.Files.MaxFileBytes,
		System: own.System, Grace: m.cfg.Executor.Grace, Staging: m.cfg.Timing.Staging, Fetch: transfer.FetchConfig{Patience: fetchPatience}, Log: m.log,
	})
	if err != nil {
		return fmt.Errorf("member %s, which has the processors of site %s: %w", m.cfg.Members.Self, m.cfg.Site, err)
	}
	m.worker, m.workPort = w, newHandoff(m.listener.Addr())
	for _, c := range w.Capabilities() {
		m.log.Info("executor capability", "capability", c.Name, "available", c.Available, "detail", c.Detail)
	}
	m.workServer = grpc.NewServer(grpc.Creds(insecure.NewCredentials()), // connections come in secured, of members
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaderList), grpc.ConnectionTimeout(handshakeWait), grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}))
	kithv1.RegisterWorkServiceServer(m.workServer, w)
	return nil
}

// closeWorker ends it; what runs runs on.
func (m *Member) closeWorker() error {
	if m.worker == nil {
		return nil
	}
	m.workServer.Stop()
	return m.worker.Close()
}

// machineOf returns how the machine with the processors is reached; nil if there is none.
func (m *Member) machineOf(lead *raftstore.Lead) *machine {
	if m.cfg.Members.Executor == "" {
		return nil
	}
	return &machine{dial: m.dialMachine, lead: lead, again: make(chan string, 1)}
}

// dialMachine begins a connection to the machine with the processors.
func (m *Member) dialMachine(ctx context.Context) (net.Conn, error) {
	at, err := m.machineAddress()
	if err != nil {
		return nil, err
	}
	return m.begin(ctx, raftstore.Peer{Name: m.cfg.Members.Executor, Address: at}, members.Call{Purpose: members.ForWork})
}

func (m *Member) machineAddress() (string, error) {
	for _, s := range m.raft.Members() {
		if s.Name == m.cfg.Members.Executor {
			return s.Address, nil
		}
	}
	if at := m.cfg.Members.ExecutorAddress; at != "" {
		return at, nil
	}
	return "", fmt.Errorf("machine %s is no member of the site, and members.executor_address is missing: say where it is, or add it: kith site members add", m.cfg.Members.Executor)
}
