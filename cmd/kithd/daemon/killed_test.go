package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kith/cmd/kithd/config"
	kithv1 "kith/proto/gen/kith/v1"
)

// killedSite is the variable by which this program is told to be a site that a test kills:
// its name. Its folder and address follow.
const killedSite, killedData, killedAddress = "KITH_TEST_SITE", "KITH_TEST_DATA", "KITH_TEST_ADDRESS"

// killedConfig is that of such a site.
func killedConfig(name, data, address string) config.Config {
	c := config.Default()
	c.Site, c.Data = name, data
	c.Listen.Address, c.Listen.InsecureLoopback = address, true
	c.Scheduler.Processors = 2
	c.Executor.Pin = false
	c.Executor.Grace = 200 * time.Millisecond
	c.Flight.Enabled, c.Flight.SizeBytes = true, 4<<20
	return c
}

// runKilledSite is the site until it is killed, or its standard input ends.
func runKilledSite(name string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	d, err := Open(killedConfig(name, os.Getenv(killedData), os.Getenv(killedAddress)), log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is what is waited for
		stop()
	}()
	fmt.Println(d.Address())
	if err := d.Run(ctx, &Reload{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killed is a site in a process of its own.
type killed struct {
	*testSite
	process *exec.Cmd
	stdin   io.Closer
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	k := &killed{testSite: &testSite{t: t, cfg: killedConfig("alpha", filepath.Join(t.TempDir(), "alpha"), "127.0.0.1:0")}}
	k.run()
	t.Cleanup(func() {
		k.stdin.Close() //nolint:errcheck // it ends then
		if err := k.process.Wait(); err != nil {
			t.Errorf("the site ends with %v", err)
		}
	})
	return k
}

// run starts the daemon, and connects to it.
func (k *killed) run() {
	k.t.Helper()
	k.process = exec.Command(os.Args[0])
	k.process.Env = append(os.Environ(), killedSite+"="+k.cfg.Site, killedData+"="+k.cfg.Data, killedAddress+"="+k.cfg.Listen.Address)
	k.process.Stderr = k.testSite
	out, err := k.process.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if k.stdin, err = k.process.StdinPipe(); err != nil {
		k.t.Fatal(err)
	}
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
	if _, err := fmt.Fscanln(out, &k.cfg.Listen.Address); err != nil {
		k.t.Fatalf("the site does not start: %v", err)
	}
	conn, err := grpc.NewClient(k.cfg.Listen.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { conn.Close() })
	k.jobs, k.bags = kithv1.NewJobServiceClient(conn), kithv1.NewBagServiceClient(conn)
}

// kill kills it.
func (k *killed) kill() {
	k.t.Helper()
	if err := k.process.Process.Signal(syscall.SIGKILL); err != nil {
		k.t.Fatal(err)
	}
	if err := k.process.Wait(); err == nil {
		k.t.Fatal("it was killed and ends well")
	}
}
