package systemd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestWays(t *testing.T) {
	t.Parallel()
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	for _, c := range []struct {
		m    Manager
		env  map[string]string
		want string
	}{
		{System, nil, "unix:path=/run/dbus/system_bus_socket unix:path=/run/systemd/private!"},
		{System, map[string]string{"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x"}, "unix:path=/x unix:path=/run/dbus/system_bus_socket unix:path=/run/systemd/private!"},
		{User, nil, "unix:path=/run/user/7/bus unix:path=/run/user/7/systemd/private!"},
		{User, map[string]string{"XDG_RUNTIME_DIR": "/r", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/r/bus"}, "unix:path=/r/bus unix:path=/r/systemd/private!"},
		{User, map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:abstract=a"}, "unix:abstract=a unix:path=/run/user/7/bus unix:path=/run/user/7/systemd/private!"},
	} {
		var got []string
		for _, w := range ways(c.m, 7, env(c.env)) {
			got = append(got, w.address+map[bool]string{true: "!"}[w.private])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s with %v: %s", c.m, c.env, got)
		}
	}
}

func TestNoManager(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
	_, err := Connect(t.Context(), User)
	var bus *BusError
	if !errors.As(err, &bus) || len(bus.Tried) != 3 || !strings.Contains(err.Error(), "/nowhere/bus") || !strings.Contains(err.Error(), "enable-linger") {
		t.Errorf("%v", err)
	}
	if _, err := Connect(t.Context(), "session"); err == nil || errors.As(err, &bus) {
		t.Errorf("an unknown manager: %v", err)
	}
}

func TestLauncherConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := NewLauncher(LauncherConfig{Env: []string{"novalue"}, Slice: "acme", Stop: -1})
	for _, problem := range []string{"Conn", "Command", "novalue", ".slice", "Stop"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s is not named: %v", problem, err)
		}
	}
}

func Example() {
	// What stands in /proc/self/cgroup of a process that a service of a user's manager started.
	u, err := ParseCgroup("0::/user.slice/user-1000.slice/user@1000.service/app.slice/acme.service/worker\n")
	fmt.Println(u, err)
	_, err = ParseCgroup("0::/\n")
	fmt.Println(errors.Is(err, ErrNoUnit), err)
	// Output:
	// acme.service of user 1000 <nil>
	// true not in a unit: the process is at the root of what it can see, as in a container
}

func ExampleResult_Cause() {
	fmt.Println(Result{Result: "oom-kill"}.Cause(), Result{Result: "exit-code"}.Cause() == "")
	// Output: oom true
}
