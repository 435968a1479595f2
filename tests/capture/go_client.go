// A client of Go's crypto/tls: go_client ADDRESS 1.2|1.3 KEYLOG.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
)

func main() {
	log, err := os.OpenFile(os.Args[3], os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer log.Close()
	versions := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	connection, err := tls.Dial("tcp", os.Args[1], &tls.Config{
		InsecureSkipVerify: true,
		KeyLogWriter:       log,
		MinVersion:         versions[os.Args[2]],
		MaxVersion:         versions[os.Args[2]],
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer connection.Close()
	fmt.Fprint(connection, "GET / HTTP/1.0\r\n\r\n")
	io.Copy(io.Discard, connection)
}
