// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/server"
)

// longestKubeconfig: a certificate cannot be taken back, so that nobody gets one for longer.
const longestKubeconfig = 365 * 24 * time.Hour

// kubeconfigFlags are the flags of `wherry kubeconfig`.
type kubeconfigFlags struct {
	dataDir    string
	user       string
	groups     []string
	ttl        time.Duration
	server     string
	file       string
	allowAdmin bool
}

func newKubeconfig(t Terminal) *cobra.Command {
	f := &kubeconfigFlags{}
	cmd := &cobra.Command{
		Use:   "kubeconfig --user NAME [--group GROUP]...",
		Short: "Create a kubeconfig for a user",
		Long: `Create a kubeconfig for a user, with a client certificate from this machine's CA that contains the user's name and groups and
expires after --ttl. What the user may do is defined by roles bound to that name or to a group (kubectl create rolebinding).

A certificate cannot be revoked, except together with all others (wherry certs rotate). Names and groups that start with "system:" are
rejected, because the server gives them special rights; members of system:masters may do anything, whatever the roles say.

The command needs access to the data folder, and so root; the server need not be running. Exit codes: 1 failure, 2 incorrect usage.`,
		Example: `  # for a day's work
  sudo wherry kubeconfig --user jane --group dev --ttl 8h -o jane.yaml
  kubectl create rolebinding jane-edits --clusterrole edit --group dev -n shop

  # for use from another machine
  sudo wherry kubeconfig --user jane --server https://192.0.2.7:6443 -o jane.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(t) },
	}
	fl := cmd.Flags()
	cmdline.DataDirFlag(cmd, &f.dataDir)
	fl.StringVar(&f.user, "user", "", "name of the user")
	fl.StringArrayVar(&f.groups, "group", nil, "`GROUP` that the user belongs to; may be given more than once")
	fl.DurationVar(&f.ttl, "ttl", 8*time.Hour, "how long it is valid, from 1m to 8760h (a year)")
	fl.StringVar(&f.server, "server", "", "URL of the API server; default: that of <data-dir>/kubeconfig")
	fl.StringVarP(&f.file, "output-file", "o", "",
		"file to write, readable only by its owner (with sudo, the user who ran it); default: standard output")
	fl.BoolVar(&f.allowAdmin, "allow-admin", false, "allow system:masters and other names that start with system:")
	return cmd
}

// check refuses what makes no sense.
func (f *kubeconfigFlags) check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.user == "" {
		refuse("--user is missing: give the name that roles will be bound to")
	}
	if f.ttl < time.Minute || f.ttl > longestKubeconfig {
		refuse("--ttl %s: use a duration from 1m to 8760h (a year)", f.ttl)
	}
	if slices.Contains(f.groups, "") {
		refuse("--group: a group must have a name")
	}
	for _, name := range append([]string{f.user}, f.groups...) {
		if strings.HasPrefix(name, "system:") && !f.allowAdmin {
			refuse("%s: the server gives special rights to names that start with system:; if that is what you want, add --allow-admin", name)
		}
	}
	if f.server != "" {
		if u, err := url.Parse(f.server); err != nil || u.Scheme != "https" || u.Host == "" {
			refuse("--server: %q is not a URL, for example https://192.0.2.7:6443", f.server)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return cmdline.ExitWith(exitUsage, err)
	}
	return nil
}

func (f *kubeconfigFlags) run(t Terminal) error {
	if err := f.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(f.dataDir)
	if err != nil {
		return err
	}
	ca, err := pki.Load(server.PKI(dir))
	if err != nil {
		return err
	}
	address := f.server
	if address == "" {
		if address, err = server.ServerURL(dir); err != nil {
			return err
		}
	}
	text, err := ca.Kubeconfig(address, f.user, f.groups, f.ttl)
	if err != nil {
		return err
	}
	ends := time.Now().Add(f.ttl)
	if ca.NotAfter().Before(ends) {
		ends = ca.NotAfter()
	}
	if slices.Contains(f.groups, user.SystemPrivilegedGroup) {
		fmt.Fprintln(t.Err, "warning: members of system:masters may do anything, whatever the roles say")
	}
	if f.file == "" || f.file == "-" {
		_, err := t.Out.Write(text)
		return err
	}
	if err := cmdline.Replaceable(f.file); err != nil {
		return err
	}
	uid, gid := sudoer()
	if err := pki.WriteFileFor(uid, gid, f.file, text, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "%s is for user %s and expires at %s\n", f.file, f.user, ends.UTC().Format(time.RFC3339))
	return nil
}

// sudoer is who typed sudo, to whom a file belongs that only its owner may read: nobody else could use it. Without sudo
// it is -1, which changes no owner.
func sudoer() (uid, gid int) {
	uid, uerr := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, gerr := strconv.Atoi(os.Getenv("SUDO_GID"))
	if uerr != nil || gerr != nil || os.Geteuid() != 0 {
		return -1, -1
	}
	return uid, gid
}
