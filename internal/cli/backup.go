// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

func newBackup(t Terminal) *cobra.Command {
	var file string
	var what hostapi.BackupParts
	cmd := &cobra.Command{
		Use:   "backup -o FILE",
		Short: "Back up the server while it runs",
		Long: `Write a backup of the running server to a file: all objects, as of one moment, and with --keys and --volumes whatever else is
needed to rebuild the server. The server keeps serving. The file is verified after it is written; only its owner can read it, since it
holds all Secrets.

The server also takes a snapshot of the objects every day (wherry server --etcd-snapshot-interval), which is on the same disk.`,
		Example: `  # all objects
  sudo wherry backup -o wherry.tar.gz

  # everything needed on another machine, including the contents of emptyDir volumes and claims
  sudo wherry backup -o wherry.tar.gz --keys --volumes

  # to another machine
  sudo wherry backup -o - --keys | ssh backup@nas 'cat > wherry.tar.gz'`,
		Args: cobra.NoArgs,
	}
	client := cmdline.Host(cmd)
	f := cmd.Flags()
	f.StringVarP(&file, "output", "o", "", "file to write; - for standard output")
	f.BoolVar(&what.Keys, "keys", false,
		"include the CA, all keys and tokens, and registry logins: whoever has the file can act as the server")
	f.BoolVar(&what.Volumes, "volumes", false,
		"include the volumes of all claims of class wherry-local and the emptyDir volumes of all pods, as they are while the pods write to them")
	_ = cmd.MarkFlagFilename("output", "tar.gz")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return cmdline.ExitWith(exitUsage,
				errors.New("where to? name a file with -o, for example -o wherry.tar.gz, or - for standard output"))

		}
		if file == "-" {
			if cmdline.IsTerminal(t.Out) {
				return cmdline.ExitWith(exitUsage,
					errors.New("a backup cannot be written to a terminal: redirect standard output, or name a file with -o"))

			}
			return client().Backup(cmd.Context(), t.Out, what)
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		h, size, err := backUp(ctx, client(), file, what)
		if err != nil {
			return cmdline.CalledOffBy(ctx, err, cmdline.NothingWritten)
		}
		fmt.Fprintf(t.Err, "%s: %s, %s\n", file, contents(h), fileSize(size))
		return nil
	}
	return cmd
}

// backUp writes a backup next to its place, verifies it and moves it there.
func backUp(ctx context.Context, c *hostapi.Client, file string,
	what hostapi.BackupParts) (h backup.Header, size int64, err error) {
	f, err := cmdline.Beside(file)
	if err != nil {
		return h, 0, err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := c.Backup(ctx, f, what); err != nil {
		return h, 0, err
	}
	if err := f.Sync(); err != nil {
		return h, 0, err
	}
	size, err = f.Seek(0, io.SeekCurrent)
	if err != nil {
		return h, 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return h, 0, err
	}
	if h, err = backup.Verify(cmdline.Until(ctx, f)); err != nil {
		return h, 0, fmt.Errorf("the backup that was written %w", err)
	}
	return h, size, os.Rename(f.Name(), file)
}

// contents says what is in a backup.
func contents(h backup.Header) string {
	text := fmt.Sprintf("node %s, %s, revision %d", h.Node, h.Created.Local().Format(time.DateTime), h.Revision)
	if h.Keys {
		text += ", keys"
	}
	if h.Volumes {
		text += ", volumes"
	}
	return text
}

func fileSize(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
