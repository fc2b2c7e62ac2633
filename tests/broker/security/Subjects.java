import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.HexFormat;

/** Names the subjects of certificates as Kafka does: a line in is a certificate's DER in hexadecimal digits. */
public class Subjects {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, "UTF-8");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] der = HexFormat.of().parseHex(line);
            X509Certificate certificate = (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(der));
            out.println(certificate.getSubjectX500Principal().getName());
        }
    }
}
