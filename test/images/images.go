// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
)

// The names under which the images are imported.
const (
	ToolRef    = "wherry.test/tool:1"
	BusyboxRef = "wherry.test/busybox:1"
)

// ErrNoBusybox is returned by [Busybox] where there is no static busybox.
var ErrNoBusybox = errors.New("there is no static busybox; install Debian's busybox-static, or name one in $BUSYBOX")

// Tool builds the image of the program in folder tool; dir is where its binary is put. The image's entrypoint is the
// program, its default command prints a line and sleeps.
func Tool(ctx context.Context, dir string) (v1.Image, error) {
	binary := filepath.Join(dir, "tool")
	if err := GoBuild(ctx, binary, "github.com/wherryproject/wherry/test/images/tool"); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	return ociimage.Build(ociimage.Spec{
		Files: []ociimage.File{
			{Path: "/tool", Data: data},
			{Path: "/tmp", Mode: fs.ModeDir | 0o777},
			{Path: "/etc/passwd", Mode: 0o644, Data: []byte(passwd)},
			{Path: "/etc/group", Mode: 0o644, Data: []byte(group)},
		},
		Entrypoint:   []string{"/tool"},
		Cmd:          []string{"sleep"},
		Env:          []string{"IMAGE_SAYS=hello", "PATH=/"},
		ExposedPorts: []string{"8080/tcp"},
	})
}

// GoBuild builds one static program of this module, with the go command on the path.
func GoBuild(ctx context.Context, out, pkg string) error {
	return GoBuildWith(ctx, out, pkg, "-s -w")
}

// GoBuildWith is GoBuild with flags for the linker.
func GoBuildWith(ctx context.Context, out, pkg, ldflags string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", ldflags, "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile has it: the build cache is shared
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\napp:x:1000:1000:app:/tmp:/bin/sh\n"
	group  = "root:x:0:\nnogroup:x:65534:\napp:x:1000:\nextra:x:2000:app\n"
)

// Busybox makes an image of the static busybox of this machine, with a link in /bin for every applet.
func Busybox(ctx context.Context) (v1.Image, error) {
	path, err := findBusybox()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := exec.CommandContext(ctx, path, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", path, err)
	}
	files := []ociimage.File{
		{Path: "/bin/busybox", Data: data},
		{Path: "/tmp", Mode: fs.ModeDir | 0o777},
		{Path: "/root", Mode: fs.ModeDir | 0o700},
		{Path: "/etc/passwd", Mode: 0o644, Data: []byte(passwd)},
		{Path: "/etc/group", Mode: 0o644, Data: []byte(group)},
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet != "busybox" {
			files = append(files, ociimage.File{Path: "/bin/" + applet, Mode: fs.ModeSymlink | 0o777,
				Data: []byte("busybox")})
		}
	}
	return ociimage.Build(ociimage.Spec{
		Files: files,
		Cmd:   []string{"sh"},
		Env:   []string{"PATH=/bin", "IMAGE_SAYS=hello"},
	})
}

// findBusybox looks where `make test-e2e` unpacks Debian's package, then where Debian installs it.
func findBusybox() (string, error) {
	for _, path := range []string{os.Getenv("BUSYBOX"), "../../bin/debian/bin/busybox", "/bin/busybox",
		"/usr/bin/busybox"} {
		if path != "" && static(path) {
			return path, nil
		}
	}
	return "", ErrNoBusybox
}

// static says whether path is a program that needs no libraries, which a scratch image has not.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
