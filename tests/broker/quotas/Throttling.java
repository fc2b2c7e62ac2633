import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * Asks Kafka's rate of quotas. A line in is a case, numbers with spaces between them: windows, their size in ms, bytes a
 * second, then the time and the bytes of each record. A line out is the throttle time of each record.
 */
public class Throttling {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split(" ");
            Metrics metrics = new Metrics();
            Sensor sensor = metrics.sensor("bytes");
            sensor.add(metrics.metricName("rate", "quota"), new Rate(), new MetricConfig()
                .samples(Integer.parseInt(fields[0]))
                .timeWindow(Long.parseLong(fields[1]), TimeUnit.MILLISECONDS)
                .quota(Quota.upperBound(Double.parseDouble(fields[2]))));
            StringBuilder answers = new StringBuilder();
            for (int at = 3; at < fields.length; at += 2) {
                long now = Long.parseLong(fields[at]);
                long throttle = 0;
                try {
                    sensor.record(Double.parseDouble(fields[at + 1]), now, true);
                } catch (QuotaViolationException violation) {
                    throttle = QuotaUtils.throttleTime(violation, now);
                }
                answers.append(answers.length() == 0 ? "" : " ").append(throttle);
            }
            metrics.close();
            System.out.println(answers);
        }
    }
}
