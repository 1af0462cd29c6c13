package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// callerSocket is the variable by which this program is told to call the site at a socket.
const callerSocket = "KITH_TEST_CALL"

// runCaller says what a site answers, and as whom it asked.
func runCaller(socket string) int {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = kithv1.NewSiteServiceClient(conn).GetSite(ctx, &kithv1.GetSiteRequest{})
	fmt.Println("as", os.Getuid(), "got", status.Code(err), err)
	return 0
}

// A job may call itself what it likes in a user namespace of its own: at the socket it is
// the account of kithd.
func TestOwnAccountInAUserNamespaceIsRefused(t *testing.T) {
	t.Parallel()
	c, _ := secureConfig(t, "alpha")
	c.Listen.AllowOwnUID = false
	alpha := startSecure(t, c, Options{})
	own := os.Getuid()
	other := own + 1
	job := exec.Command("/proc/self/exe")
	job.Env = append(os.Environ(), callerSocket+"="+alpha.cfg.SocketPath())
	job.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: other, HostID: own, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: other, HostID: os.Getgid(), Size: 1}},
	}
	out, err := job.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skip("no user namespaces here:", err)
	}
	if want := fmt.Sprintf("as %d got PermissionDenied", other); err != nil || !strings.HasPrefix(string(out), want) || !strings.Contains(string(out), "listen.allow_own_uid") {
		t.Errorf("%v, %q; want %q", err, out, want)
	}
}
