package require

import (
	"fmt"
	"os"
	"testing"
)

// TestFreePortIsNobodysByChance: whoever asks the kernel for any port never gets that of a server of ours, also while it is
// being started again.
func TestFreePortIsNobodysByChance(t *testing.T) {
	t.Parallel()
	var first, last int
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skipf("there is no telling which ports this kernel gives: %v", err)
	}
	if _, err := fmt.Sscan(string(b), &first, &last); err != nil || first < 20000 {
		t.Skipf("there is no room below the ports that this kernel gives: %s %v", b, err)
	}
	for range 50 {
		text, err := freePort()
		var port int
		if _, bad := fmt.Sscan(text, &port); err != nil || bad != nil || port >= first || port < 1024 {
			t.Fatalf("port %q, %v; the kernel gives %d to %d", text, err, first, last)
		}
	}
}
