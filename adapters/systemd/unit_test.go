package systemd

import (
	"errors"
	"testing"
)

func TestParseCgroup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Unit{
		"0::/system.slice/acme.service\n":                                                    {Name: "acme.service", Manager: System},
		"0::/system.slice/acme.service/worker/3\n":                                           {Name: "acme.service", Manager: System},
		"0::/acme.service\n":                                                                 {Name: "acme.service", Manager: System},
		"0::/system.slice/system-acme.slice/acme@a\\x2db.service\n":                          {Name: "acme@a\\x2db.service", Manager: System},
		"0::/user.slice/user-1000.slice/session-3.scope\n":                                   {Name: "session-3.scope", Manager: System},
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/acme.service\n":          {Name: "acme.service", Manager: User, UID: 1000},
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope/sub\n":      {Name: "run-r1.scope", Manager: User, UID: 1000},
		"0::/user.slice/user-0.slice/user@0.service/app.slice/app-x.slice/app-x@1.service\n": {Name: "app-x@1.service", Manager: User},
		// The program's own name may be what the kernel would not allow as a file's.
		"0::/system.slice/_cgroup.service\n":        {Name: "cgroup.service", Manager: System},
		"0::/system.slice/acme.service (deleted)\n": {Name: "acme.service", Manager: System},
		// Several hierarchies: the unified one counts, the legacy one only alone.
		"12:memory:/elsewhere\n1:name=systemd:/system.slice/old.service\n0::/system.slice/new.service\n": {Name: "new.service", Manager: System},
		"12:memory:/elsewhere\n1:name=systemd:/system.slice/old.service\n":                               {Name: "old.service", Manager: System},
		// The manager of a user, seen as the system manager's own unit.
		"0::/user.slice/user-1000.slice/user@1000.service\n": {Name: "user@1000.service", Manager: System},
	} {
		got, err := ParseCgroup(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0::/\n", "0::/../../acme.service\n", "garbage", "0::/init.scope\n",
		"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n",
		"0::/docker/0123456789ab\n", "0::/system.slice/docker-0123456789ab.scope\n",
		"0::/kubepods/besteffort/pod1/0123\n", "0::/machine.slice/libpod-abc.scope/container\n",
		"0::/system.slice\n", "12:memory:/system.slice/acme.service\n",
	} {
		if got, err := ParseCgroup(text); !errors.Is(err, ErrNoUnit) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzParseCgroup(f *testing.F) {
	f.Add("0::/system.slice/acme.service\n")
	f.Add("1:name=systemd:/user.slice/user-1.slice/user@1.service/app.slice/_x.scope/y\n")
	f.Fuzz(func(t *testing.T, s string) {
		if u, err := ParseCgroup(s); err == nil && (u.Name == "" || u.Manager == "") {
			t.Errorf("%q: %+v without an error", s, u)
		}
	})
}
