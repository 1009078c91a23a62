from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0007_host_metrics'),
    ]

    operations = [
        migrations.AddField(
            model_name='logchunk',
            name='store',
            field=models.CharField(choices=[('files', "Files of the portal's machine"), ('s3', 'A bucket of S3')], db_default='files', default='files', max_length=8),
        ),
        migrations.AddField(
            model_name='loghead',
            name='removed_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
