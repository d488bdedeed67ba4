package canary

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is taken away below a live path. Listing folders and executing stay allowed: a right to list a folder could only
// be given together with everything below it, live paths included.
const (
	onFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	onAll   = onFiles | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
)

// landlock takes the live paths from the calling thread and from all that it starts, for good. Landlock knows only what
// is allowed, so everything else is: each neighbour of a live path and of the folders above it. own is allowed wherever it
// lies.
func landlock(live []string, own string) error {
	files, all := uint64(onFiles), uint64(onAll)
	abi, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if no != 0 {
		return fmt.Errorf("the kernel has none: %w", no)
	}
	if abi >= 2 {
		all |= unix.LANDLOCK_ACCESS_FS_REFER // without it nothing may be renamed from folder to folder
	}
	if abi >= 3 {
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: all}
	fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if no != 0 {
		return fmt.Errorf("make the rules: %w", no)
	}
	defer unix.Close(int(fd))
	rules := ruleset{fd: int(fd), files: files, all: all, live: live}
	if err := errors.Join(rules.around("/"), rules.allow(own)); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); no != 0 {
		return fmt.Errorf("restrict: %w", no)
	}
	return nil
}

type ruleset struct {
	fd         int
	files, all uint64
	live       []string
}

// around allows everything in a folder but the live paths below it. The folder itself gets no rule, which would hold for
// all below it.
func (r ruleset) around(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case slices.ContainsFunc(r.live, func(l string) bool { return within(l, path) }):
		case slices.ContainsFunc(r.live, func(l string) bool { return within(path, l) }):
			err = r.around(path)
		default:
			err = r.allow(path)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

func (r ruleset) allow(path string) error {
	// A symlink is allowed as itself: where it leads may be a live path, and else has a rule of its own.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // gone, or nothing that we could have reached ourselves
	}
	if err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	access := r.all
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access = r.files
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, no := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); no != 0 {
		return fmt.Errorf("allow %s: %w", path, no)
	}
	return nil
}
